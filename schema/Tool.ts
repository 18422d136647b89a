/**
 * A tool has two views: the model sees a name, a description and an input schema; the control plane sees locks,
 * effect class, limits and secrets, and never shows them.
 */
import { Effect, Schema, SchemaGetter } from "effect"
import { CAPABILITIES, Capabilities, type Capability } from "./Capability.ts"
import { SecretName } from "./Ids.ts"

/** Canonical, dotted tool name. A segment never holds `-`, so that wire names are a bijection. */
export const ToolName = Schema.String.check(
  Schema.isPattern(/^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$/u, {
    message: "a tool name is segments of a-z, 0-9 and _, separated by dots"
  }),
  Schema.isMaxLength(64)
).pipe(Schema.brand("ToolName"))
export type ToolName = typeof ToolName.Type

/** The name as providers accept it: `choir.fs.read` is `choir-fs-read`. */
export const toWireName = (name: ToolName): string => name.replaceAll(".", "-")

/** The one name by which models call all tools `choir.propose.<kind>`, so that no prompt describes each of them. */
export const PROPOSE = ToolName.make("choir.propose")

const PROPOSES = /^choir[.-]propose[.-]([a-z_]+)$/u

/** The name by which a model is offered a tool. */
export const offeredName = (name: string): string => (PROPOSES.test(name) ? PROPOSE : name).replaceAll(".", "-")

/** A name in a text for a model, which knows the offered names alone. */
export const shownName = (name: string): string => {
  const kind = PROPOSES.exec(name)?.[1]
  return kind === undefined ? offeredName(name) : `${offeredName(name)} (kind ${kind})`
}

/** The names of Choir's own tools as a model knows them, in a text that people may read as well and that may have them either way. */
export const withShownNames = (text: string): string => text.replaceAll(/\bchoir(?:\.[a-z][a-z0-9_]*)+/gu, shownName)

/** The canonical name behind a wire name, or `undefined` when a model made one up that cannot be a tool. */
export const fromWireName = (wire: string): ToolName | undefined => {
  const name = wire.replaceAll("-", ".")
  return Schema.is(ToolName)(name) && toWireName(name) === wire ? name : undefined
}

/** A tool's name in either form, as a model may write it; the canonical one comes of it. */
export const ToolNameInEitherForm = Schema.String.pipe(
  Schema.decodeTo(ToolName, {
    decode: SchemaGetter.transform((name) => name.replaceAll("-", ".")),
    encode: SchemaGetter.passthrough()
  })
)

/** S is shared (read), X is exclusive (write). */
export const LockMode = Schema.Literals(["S", "X"]).annotate({
  description: "S is shared (read), X is exclusive (write)"
})

/** One lock of an atomic lockset: `workspace`, `file:<path>`, `browser_tab` or `choirtmp`. */
export const LockRequest = Schema.Struct({
  resource: Schema.NonEmptyString.check(Schema.isMaxLength(4200)).annotate({
    description: "workspace, file:<path>, browser_tab or choirtmp"
  }),
  mode: LockMode
})
export type LockRequest = typeof LockRequest.Type

/**
 * The effect of a tool on the world, which decides how a crash is survived (D3): `none` may run again, `workspace` is local,
 * `external` leaves the machine and runs at most once.
 */
export const ToolEffect = Schema.Literals(["none", "workspace", "external"])
export type ToolEffect = typeof ToolEffect.Type

/** The lanes that may call a tool and see its results; with `none` both call it and its output is kept nowhere. */
export const Exposure = Schema.Literals(["edge", "core", "both", "none"])

/** The part of a tool that reaches a model. */
export const ToolLlmView = Schema.Struct({
  name: ToolName.annotate({ description: "Segments of a-z, 0-9 and _, separated by dots" }),
  description: Schema.NonEmptyString.check(Schema.isMaxLength(4096)).annotate({
    description: "What the tool does and when to use it, for the model"
  }),
  input_schema: Schema.Record(Schema.String, Schema.Unknown).annotate({
    description: 'The input as a JSON Schema of "type": "object", with a description for each property'
  })
})
export type ToolLlmView = typeof ToolLlmView.Type

/** The part that only the control plane sees. */
export const ToolRuntimeView = Schema.Struct({
  exec_path: Schema.NonEmptyString.annotate({
    description: "The executable: tools/<name> of the repository, as <name>"
  }),
  timeout_ms: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3_600_000 }))
    .annotate({ description: "When a run is killed. Default 15000" })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(15_000))),
  locks: Schema.Array(LockRequest)
    .annotate({ description: "What a run needs for itself or shares; all of it is granted at once" })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  effect: Schema.optionalKey(
    ToolEffect.annotate({
      description: "What a run changes: nothing, files of the workspace, or anything outside. Default external"
    })
  ),
  /** The older spelling of `effect`: none, write, external. */
  side_effect: Schema.optionalKey(
    Schema.Literals(["none", "write", "external"]).annotate({
      description: "Older spelling of effect; give one of them"
    })
  ),
  network: Schema.Boolean.annotate({ description: "Whether it reaches the network. Default false" }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(false))
  ),
  /** Secrets that a call is given: their names, or `llm` and `core_llm` for those of the bound models. */
  secret_resources: Schema.Array(SecretName)
    .check(Schema.isMaxLength(16))
    .annotate({ description: "Names of the secrets that a run is given" })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  idempotent: Schema.Boolean.annotate({ description: "Whether a second run changes nothing more. Default false" }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(false))
  ),
  exposure: Exposure.annotate({
    description: "Which lanes may call it; with none both call it and its output is kept nowhere. Default both"
  }).pipe(Schema.withDecodingDefaultKey(Effect.succeed("both" as const))),
  /** Results stand whole in the log, and models see their status and summary alone. */
  prompt_mask: Schema.Boolean.annotate({
    description: "Whether models see only the status and the summary of its results. Default false"
  }).pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  /** Absent, they follow from the other keys. */
  capabilities: Schema.optionalKey(
    Capabilities.annotate({
      description: "What a run can do: fs:read, fs:write, net, env:read, exec, agent:spawn, human"
    })
  ),
  untrusted: Schema.Boolean.annotate({
    description: "Whether its results are text from strangers. Default false"
  }).pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  version: Schema.String.annotate({ description: "Its version. Default 1.0" }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("1.0"))
  )
})

/** A manifest file `tools/<name>.json` of a global or agent repository. */
export const ToolManifest = Schema.Struct({
  llm: ToolLlmView.annotate({ description: "What models see of it" }),
  runtime: ToolRuntimeView.annotate({ description: "How it runs" })
})
  .annotate({ description: "The tool's manifest" })
  .check(
    Schema.makeFilter(({ runtime }) =>
      runtime.effect !== undefined && runtime.side_effect !== undefined
        ? { path: ["runtime", "side_effect"], issue: "give effect or side_effect, not both" }
        : undefined
    )
  )
export type ToolManifest = typeof ToolManifest.Type

/** A manifest's effect class. A tool that declares none is taken for the most careful one. */
export const effectOf = ({ runtime }: ToolManifest): ToolEffect =>
  runtime.effect ??
  (runtime.side_effect === "none" ? "none" : runtime.side_effect === "write" ? "workspace" : "external")

const OF_EFFECT: Readonly<Record<ToolEffect, ReadonlyArray<Capability>>> = {
  none: ["fs:read"],
  workspace: ["fs:read", "fs:write"],
  external: ["fs:read", "fs:write", "net"]
}

/** The effects of a tool that declares none: what its effect class lets it do. */
export const capabilitiesOfEffect = (effect: ToolEffect): ReadonlyArray<Capability> => OF_EFFECT[effect]

/** A tool's effects. A manifest cannot leave out what its other keys show. */
export const capabilitiesOf = (manifest: ToolManifest): ReadonlyArray<Capability> => {
  const { capabilities, network, secret_resources } = manifest.runtime
  const effect = effectOf(manifest)
  const found = new Set<Capability>([
    ...(capabilities ?? capabilitiesOfEffect(effect)),
    ...(effect === "workspace" ? (["fs:write"] as const) : []),
    ...(network ? (["net"] as const) : []),
    ...(secret_resources.length > 0 ? (["env:read"] as const) : [])
  ])
  return CAPABILITIES.filter((capability) => found.has(capability))
}
