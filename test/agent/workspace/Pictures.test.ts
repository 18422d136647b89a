/** Pictures that prompts show: what is one, which copies are kept, and what is handed out of them. */
import { createHash } from "node:crypto"
import { readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { pictureHeader } from "#src/agent/workspace/pictureHeader.ts"
import { PICTURE_BYTES_MAX, Pictures } from "#src/agent/workspace/Pictures.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { gifOf, jpegOf, pngOf, webpOf } from "../../support/pictures.ts"
import { seeded } from "../../support/seeded.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"

const kept = Effect.gen(function* () {
  const { root } = yield* temporaryWorkspace
  const context = yield* Layer.build(Pictures.layer.pipe(Layer.provideMerge(Workspace.layer({ root }))))
  return { root, pictures: yield* Effect.provideContext(Pictures, context) }
})

const keep = (pictures: Pictures["Service"], file: Uint8Array) =>
  Effect.map(pictures.keep(file), (looked) => {
    if (looked?.picture === undefined) throw new Error("it is no picture")
    return looked.picture
  })

describe("pictureHeader", () => {
  it("knows the formats and the size of a picture", () => {
    const size = { width: 640, height: 480 }
    assert.deepStrictEqual(pictureHeader(pngOf(640, 480)), { type: "image/png", size })
    assert.deepStrictEqual(pictureHeader(gifOf(640, 480)), { type: "image/gif", size })
    assert.deepStrictEqual(pictureHeader(jpegOf(640, 480)), { type: "image/jpeg", size })
    for (const webp of webpOf(640, 480)) assert.deepStrictEqual(pictureHeader(webp), { type: "image/webp", size })
  })

  it("takes nothing else for a picture, and no size that is not there", () => {
    for (const text of ["", "PNG", "GIF", "<svg/>", "RIFF\0\0\0\0WAVE", "BM\0\0"])
      assert.isUndefined(pictureHeader(Buffer.from(text, "latin1")), text)
    for (const file of [
      pngOf(0, 5),
      pngOf(7, 5).subarray(0, 20),
      gifOf(1, 1).subarray(0, 8),
      Buffer.from([255, 216, 255])
    ])
      assert.notProperty(pictureHeader(file), "size")
  })

  it("reads no byte behind the end of a file, however it was cut or changed", () => {
    const next = seeded(7)
    const files = [pngOf(9, 9), gifOf(9, 9), jpegOf(9, 9), ...webpOf(9, 9)]
    for (let turn = 0; turn < 3000; turn++) {
      const file = Buffer.from(files[turn % files.length] ?? [])
      for (let change = 0; change < 3; change++) file[3 + (next(file.length) % (file.length - 3))] = next(256)
      pictureHeader(file.subarray(0, next(file.length + 1)))
    }
  })
})

describe("Pictures", () => {
  it.effect("hands out what it kept, each once, after the file has changed", () =>
    Effect.gen(function* () {
      const { pictures, root } = yield* kept
      writeFileSync(join(root, "shot.png"), pngOf(4, 4, "first"))
      const first = yield* pictures.keepFile("shot.png")
      writeFileSync(join(root, "shot.png"), pngOf(4, 4, "second"))
      assert.isDefined(first)
      const data = yield* pictures.load([first, first])
      assert.deepStrictEqual(
        [...data],
        [
          [
            createHash("sha256")
              .update(pngOf(4, 4, "first"))
              .digest("hex"),
            pngOf(4, 4, "first").toString("base64")
          ]
        ]
      )
    })
  )

  it.effect("hands out no copy that was changed or is gone", () =>
    Effect.gen(function* () {
      const { pictures, root } = yield* kept
      const [changed, gone] = [yield* keep(pictures, pngOf(1, 1, "a")), yield* keep(pictures, pngOf(1, 1, "b"))]
      const copy = (sha256: string) => join(root, `.choirtmp/pictures/${sha256}.png`)
      writeFileSync(copy(changed.sha256), pngOf(1, 1, "another"))
      rmSync(copy(gone.sha256))
      assert.strictEqual((yield* pictures.load([changed, gone])).size, 0)
    })
  )

  it.effect("keeps a limited number of copies, the newest", () =>
    Effect.gen(function* () {
      const { pictures, root } = yield* kept
      let last = yield* keep(pictures, pngOf(1, 1))
      for (let count = 0; count < 70; count++) last = yield* keep(pictures, pngOf(1, 1, `${count}`))
      assert.lengthOf(readdirSync(join(root, ".choirtmp/pictures")), 64)
      assert.strictEqual((yield* pictures.load([last])).size, 1)
    })
  )

  it.effect("takes no file that is not a picture, is too large, or is outside of the workspace", () =>
    Effect.gen(function* () {
      const { pictures, root } = yield* kept
      writeFileSync(join(root, "text"), "text")
      writeFileSync(join(root, "large.png"), Buffer.concat([pngOf(1, 1), Buffer.alloc(PICTURE_BYTES_MAX)]))
      for (const path of ["text", "large.png", "missing.png", "../outside/file"])
        assert.isUndefined(yield* pictures.keepFile(path), path)
    })
  )

  it("are small enough in base64 for every provider", () => {
    assert.isBelow(Math.ceil(PICTURE_BYTES_MAX / 3) * 4, 5 * 1024 * 1024)
  })
})
