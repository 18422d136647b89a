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
>()("choir/choirctl/Host") {
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

/** A service whose every use is a defect. */
const unused = <I, S extends object>(service: Context.Key<I, S>): Layer.Layer<I> =>
  Layer.succeed(
    service,
    new Proxy<S>({} as S, {
      get: (_, name) => {
        if (typeof name === "symbol") return undefined
        throw new Error(`the command line's parser uses ${service.key}.${name}, which it was not given`)
      }
    })
  )

/**
 * The services that the type of the command line's parser requires, and that no flag of choirctl uses. Commands do not get them: `cli.ts`
 * takes only those that require {@link Host} and the screen, so files are within reach of {@link onHost} alone.
 */
export const parserServices = Layer.mergeAll(
  unused(FileSystem.FileSystem),
  Path.layer,
  unused(Terminal.Terminal),
  unused(ChildProcessSpawner.ChildProcessSpawner),
  unused(Stdio.Stdio)
)
