/** Scripted models of sessions with jobs: the call that starts a job, and what each lane answers. */
import { Effect, type Schema } from "effect"
import { inOrder, isCore, type Said, type Script } from "./testing/ScriptedModel.ts"

/** The call of edge that starts a job. */
export const job = (job_name: string, more: Readonly<Record<string, Schema.Json>> = {}) =>
  ["choir.core.spawn", { job_name, task_spec: `work as ${job_name}`, ...more }] as const

/** The answers of each lane in order: edge's, and those of each job by its name. */
export const byLane = (edge: ReadonlyArray<Said>, jobs: Readonly<Record<string, ReadonlyArray<Said>>>): Script => {
  const edgeSays = inOrder(...edge)
  const jobSays = new Map(Object.entries(jobs).map(([name, said]) => [name, inOrder(...said)]))
  return (messages, tools) => {
    if (!isCore(messages)) return edgeSays(messages, tools)
    const name = /^Job: (\S+)/mu.exec(
      messages.find(({ content }) => content?.includes("\nTask:\n"))?.content ?? ""
    )?.[1]
    return jobSays.get(name ?? "")?.(messages, tools) ?? Effect.die(new Error(`no script for ${name}`))
  }
}
