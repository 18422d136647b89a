/** The identity texts of the image (spec 7.1): USER.md and SOUL.md for edge, SOUL-CORE.md for cores. */
import { Context, Effect, FileSystem, Layer } from "effect"
import type { Identity } from "./Prompt.ts"

/** Reads once; the image does not change while an agent runs. An absent file is an empty text. */
export class ImageTexts extends Context.Service<ImageTexts, Identity>()("choir/agent/ImageTexts") {
  static readonly layer = (choir: string) =>
    Layer.effect(
      ImageTexts,
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const read = (name: string) => Effect.orElseSucceed(fs.readFileString(`${choir}/${name}`), () => "")
        return ImageTexts.of({
          user: yield* read("USER.md"),
          soul: yield* read("SOUL.md"),
          soulCore: yield* read("SOUL-CORE.md")
        })
      })
    )
}
