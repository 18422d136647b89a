/** Whether somebody accepts connections on choird's socket, found out without asking anything. */
import { connect } from "node:net"
import { Effect } from "effect"
import { operatorSocket } from "./root.ts"

const socketAnswers = (path: string) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(path)
    socket.once("connect", () => resume(Effect.succeed(true)))
    socket.once("error", () => resume(Effect.succeed(false)))
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.map((answers) => answers))

export const choirdAnswers = (home: string) => socketAnswers(operatorSocket(home))
