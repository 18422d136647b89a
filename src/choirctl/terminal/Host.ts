/** The files, programs, terminal and standard input of this host. */
import type { NodeServices } from "@effect/platform-node/NodeServices"
import { Context, Effect, FileSystem, Layer, Path, Stdio, Terminal } from "effect"
import { ChildProcessSpawner } from "effect/process"

export class Host extends Context.Service<
  Host,
  {
    /** Gives work what it needs of the host. Node's own modules for it are loaded at the first use, since most commands have none. */
    provide<A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, NodeServices>>
  }
>()("choir/choirctl/terminal/Host") {
  static readonly layer = Layer.succeed(Host, {
    provide: (work) =>
      Effect.flatMap(
        Effect.promise(() => import("@effect/platform-node/NodeServices")),
        ({ layer }) => Effect.provide(work, layer)
      )
  })
}

/** Gives work what it needs of the host that the command runs on. */
export const onHost = <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.flatMap(Host, ({ provide }) => provide(work))

const unused = Effect.die("the command line itself needs nothing of the host")

/**
 * Services that the command line's parser requires and no flag of choirctl uses. These files hold nothing and take nothing: a command that
 * works on files does so within {@link onHost}.
 */
export const parserServices = Layer.mergeAll(
  FileSystem.layerNoop({}),
  Path.layer,
  Layer.succeed(
    Terminal.Terminal,
    Terminal.make({
      columns: unused,
      rows: unused,
      size: unused,
      readInput: unused,
      readLine: unused,
      display: () => unused
    })
  ),
  Layer.succeed(
    ChildProcessSpawner.ChildProcessSpawner,
    ChildProcessSpawner.make(() => unused)
  ),
  Stdio.layerTest({})
)
