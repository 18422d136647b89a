/** Whether somebody accepts connections on a socket, found out without asking anything. */
import { connect } from "node:net"
import { Effect } from "effect"

export const socketAnswers = (path: string): Effect.Effect<boolean> =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(path)
    socket.once("connect", () => {
      socket.destroy()
      resume(Effect.succeed(true))
    })
    socket.once("error", () => resume(Effect.succeed(false)))
    return Effect.sync(() => socket.destroy())
  })
