/** Another program of this host that listens on an abstract name, for datagrams and for connections. */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { Effect } from "effect"

const EAR = `
import select, socket, sys
name = "\\0" + sys.argv[1]
datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
datagrams.bind(name + "-datagrams")
streams = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
streams.bind(name)
streams.listen()
print("ready", flush=True)
while True:
    for one in select.select([datagrams, streams], [], [])[0]:
        if one is datagrams:
            print("heard", one.recv(4096).decode(), flush=True)
        else:
            one.accept()[0].close()
            print("heard a connection", flush=True)
`

/** What it hears of `<name>-datagrams` and of `<name>`; what anybody sent before a question has arrived by its answer. */
export const listenAbstract = Effect.fnUntraced(function* (name: string) {
  const heard: Array<string> = []
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn("python3", ["-u", "-c", EAR, name], { stdio: ["ignore", "pipe", "inherit"] })),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  yield* Effect.callback<void>((resume) => {
    createInterface(child.stdout).on("line", (line) => {
      if (line === "ready") resume(Effect.void)
      else heard.push(line)
    })
  })
  return { heard: (): ReadonlyArray<string> => heard }
})
