/** Stands in for the agent: says hello on its socket, then runs what it is sent, so that a test acts from the inside. */
import { spawnSync } from "node:child_process"
import { createRequire } from "node:module"
import { connect } from "node:net"

const flag = (name) => process.argv.find((argument) => argument.startsWith(`--${name}=`))?.slice(name.length + 3)
const AsyncFunction = (async () => {}).constructor
const sh = (command) => {
  const { stdout, stderr, status } = spawnSync("sh", ["-c", command], { encoding: "utf8" })
  return { out: stdout, err: stderr, status }
}

const socket = connect(flag("socket"))
const send = (message) => socket.write(`${JSON.stringify(message)}\n`)
send({ hello: true, argv: process.argv, env: process.env, pid: process.pid, cwd: process.cwd() })
// An agent that lost choird must not end by itself here: its runtime has to end it.
socket.on("error", () => {})
setInterval(() => {}, 1000)

let text = ""
socket.on("data", async (chunk) => {
  text += chunk
  const lines = text.split("\n")
  text = lines.pop()
  for (const line of lines) {
    const { ask, code } = JSON.parse(line)
    const run = new AsyncFunction("require", "sh", "flag", code)
    const answer = await run(createRequire("/"), sh, flag).then(
      (value) => ({ value }),
      (error) => ({ error: `${error.code ?? ""} ${error.message}` })
    )
    send({ ask, ...answer })
  }
})
