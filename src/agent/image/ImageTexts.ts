/** The identity texts of the image: USER.md and SOUL.md for edge, SOUL-CORE.md for cores. */
import { Context, Effect, FileSystem, Layer, Schema } from "effect"

/** The image's texts; an absent file is an empty text. */
export interface Identity {
  readonly user: string
  readonly soul: string
  readonly soulCore: string
}

/** An identity text that is there and cannot be read. An agent that is not who it is meant to be does not start. */
export class IdentityUnreadable extends Schema.TaggedError<IdentityUnreadable>()("IdentityUnreadable", {
  file: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `${this.file} cannot be read: ${this.reason}. Correct it in the repository, then build and restart the agent`
  }
}

/** Reads once; the image does not change while an agent runs. An absent file is an empty text. */
export class ImageTexts extends Context.Service<ImageTexts, Identity>()("choir/agent/ImageTexts") {
  static readonly layer = (choir: string) =>
    Layer.effect(
      ImageTexts,
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const read = (name: string) =>
          fs.readFileString(`${choir}/${name}`).pipe(
            Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed("")),
            Effect.mapError(({ message }) => new IdentityUnreadable({ file: name, reason: message }))
          )
        return ImageTexts.of({
          user: yield* read("USER.md"),
          soul: yield* read("SOUL.md"),
          soulCore: yield* read("SOUL-CORE.md")
        })
      })
    )
}
