/**
 * The pictures that models are shown. An event has a picture's digest and not its bytes, of which a copy is kept in the workspace: a prompt that
 * is made again shows what the first one did, also when the file has changed since.
 */
import { createHash } from "node:crypto"
import { Context, Effect, Layer, Option, Result } from "effect"
import type { Picture } from "#schema/Picture.ts"
import type { PictureData } from "#src/shared/model/Asked.ts"
import { pictureHeader } from "./pictureHeader.ts"
import { Workspace } from "./Workspace.ts"

/** Bytes of a picture that is shown: in base64 it has to stay below the 5 MiB of Anthropic, the lowest limit of the providers. */
export const PICTURE_BYTES_MAX = 3_750_000
/** Pixels of the longer side of a picture that is shown, as Anthropic limits it. */
export const PICTURE_SIDE_MAX = 8000
/** Copies that are kept, and their bytes together; the oldest go first. */
const KEPT = { files: 64, bytes: 64 * 1024 * 1024 }
/** How long a workspace may take to hand out the pictures of a request, or one of a message, before it goes without them. */
const LOAD_MS_MAX = 5000
const FILE_MS_MAX = 5000

const COPIES = ".choirtmp/pictures"

/** The path of the copy of a picture. */
export const pictureCopy = ({ sha256, type }: Picture): string => `${COPIES}/${sha256}.${type.slice("image/".length)}`

/** A file that is a picture, in words, and as it is shown where it can be. */
export interface Looked {
  /** Its format and size, such as `PNG image of 1,210 bytes, 20 × 10 pixels`. */
  readonly words: string
  readonly picture?: Picture
  /** Why it cannot be shown. */
  readonly problem?: string
}

/** Keeps pictures and hands out their bytes. */
export class Pictures extends Context.Service<
  Pictures,
  {
    /** Keeps a copy of a picture; `undefined` for any other file. */
    keep(file: Uint8Array): Effect.Effect<Looked | undefined>
    /** Keeps a copy of a file of the workspace; `undefined` where it cannot be read, or holds nothing that can be shown. */
    keepFile(path: string): Effect.Effect<Picture | undefined>
    /** The bytes of these pictures, without those of which no true copy is left. */
    load(pictures: ReadonlyArray<Picture>): Effect.Effect<PictureData>
  }
>()("choir/agent/Pictures") {
  static readonly layer = Layer.effect(
    Pictures,
    Effect.suspend(() => make)
  )

  /** Of an agent without a workspace, which has no pictures. */
  static readonly layerNone = Layer.succeed(Pictures, {
    keep: () => Effect.undefined,
    keepFile: () => Effect.undefined,
    load: () => Effect.succeed(NONE)
  })
}

const NONE: PictureData = new Map()

const NAMES: Readonly<Record<Picture["type"], string>> = {
  "image/png": "PNG",
  "image/jpeg": "JPEG",
  "image/gif": "GIF",
  "image/webp": "WebP"
}

const counted = (count: number): string => count.toLocaleString("en-US")

const look = (file: Uint8Array): Looked | undefined => {
  const header = pictureHeader(file)
  if (header === undefined) return undefined
  const { size, type } = header
  const bytes = file.byteLength
  const pixels = size === undefined ? "" : `, ${size.width} × ${size.height} pixels`
  const words = `${NAMES[type]} image of ${counted(bytes)} bytes${pixels}`
  if (bytes > PICTURE_BYTES_MAX)
    return {
      words,
      problem: `is larger than the ${counted(PICTURE_BYTES_MAX)} bytes that can be shown: make it smaller`
    }
  if (Math.max(size?.width ?? 0, size?.height ?? 0) > PICTURE_SIDE_MAX)
    return {
      words,
      problem: `has a side of more than the ${counted(PICTURE_SIDE_MAX)} pixels that can be shown: make it smaller`
    }
  const sha256 = createHash("sha256").update(file).digest("hex")
  return { words, picture: { type, sha256, bytes, ...size } }
}

const make = Effect.gen(function* () {
  const workspace = yield* Workspace
  const bytesOf = (picture: Picture) =>
    Effect.map(
      Effect.option(workspace.read(pictureCopy(picture))),
      Option.filter(({ sha256 }) => sha256 === picture.sha256)
    )
  const keep = Effect.fn("Pictures.keep")(function* (file: Uint8Array) {
    const looked = look(file)
    if (looked?.picture === undefined) return looked
    const kept = yield* Effect.result(workspace.keep(pictureCopy(looked.picture), file, KEPT))
    return Result.isSuccess(kept)
      ? looked
      : { words: looked.words, problem: "cannot be shown, because no copy of it can be kept: try again" }
  })
  return Pictures.of({
    keep,
    keepFile: (path) =>
      workspace.read(path).pipe(
        Effect.flatMap(({ bytes }) => keep(bytes)),
        Effect.map((looked) => looked?.picture),
        Effect.orElseSucceed(() => undefined),
        Effect.timeoutOrElse({ duration: FILE_MS_MAX, orElse: () => Effect.undefined })
      ),
    load: Effect.fn("Pictures.load")(
      function* (pictures) {
        const once = new Map(pictures.map((picture) => [picture.sha256, picture]))
        const data = new Map<string, string>()
        for (const picture of once.values()) {
          const file = yield* bytesOf(picture)
          if (Option.isSome(file)) data.set(picture.sha256, Buffer.from(file.value.bytes).toString("base64"))
        }
        return data
      },
      Effect.timeoutOrElse({ duration: LOAD_MS_MAX, orElse: () => Effect.succeed(NONE) })
    )
  })
})
