/**
 * The floor of the step benchmarks, a process of its own: a loop that sends the very requests that the agent sent, to the same
 * model, and does the same tool work, and keeps nothing. The parent sends a {@link RawOrder} and gets `{ done: true }` back.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

export interface RawOrder {
  readonly url: string
  readonly workspace: string
  readonly bodies: ReadonlyArray<string>
  /** How many requests each lane sends; the bodies start over when they are used up. */
  readonly requests: number
  readonly lanes: number
}

interface Completion {
  readonly choices: ReadonlyArray<{
    readonly message: {
      readonly tool_calls?: ReadonlyArray<{ readonly function: { readonly name: string; readonly arguments: string } }>
    }
  }>
}

const loop = async (lane: number, messages: ReadonlyArray<unknown>, { requests, url, workspace }: RawOrder) => {
  for (let sent = 0; sent < requests; sent++) {
    const response = await fetch(`${url}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-lane": `${lane}:` },
      body: JSON.stringify(messages[sent % messages.length])
    })
    const completion = (await response.json()) as Completion
    for (const call of completion.choices[0]?.message.tool_calls ?? []) {
      const { content, path } = JSON.parse(call.function.arguments) as { path: string; content?: string }
      if (content === undefined) readFileSync(join(workspace, path), "utf8")
      else writeFileSync(join(workspace, path), content)
    }
  }
}

const run = async (order: RawOrder) => {
  const messages = order.bodies.map((body): unknown => JSON.parse(body))
  await Promise.all(Array.from({ length: order.lanes }, (_, lane) => loop(lane, messages, order)))
}

process.on("message", (order) => {
  void run(order as RawOrder).then(() => process.send?.({ done: true }))
})
process.on("disconnect", () => process.exit(0))
