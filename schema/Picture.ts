/** An image file that prompts show. It is a picture here, since an image is what an agent runs from. */
import { Schema } from "effect"
import { Sha256 } from "./Ids.ts"

/** The formats that every provider with vision takes. */
export const PictureType = Schema.Literals(["image/png", "image/jpeg", "image/gif", "image/webp"])
export type PictureType = typeof PictureType.Type

/** A picture by the digest of its bytes, of which the agent keeps a copy. `width` and `height` are in pixels, where its header tells them. */
export const Picture = Schema.Struct({
  type: PictureType,
  sha256: Sha256,
  bytes: Schema.Natural,
  width: Schema.optionalKey(Schema.Natural),
  height: Schema.optionalKey(Schema.Natural)
})
export type Picture = typeof Picture.Type
