/** The one digest of all tools that an image has of the repositories. */
import { lstatSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Option, Result, Schema } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { ImageVersionFile } from "#schema/Image.ts"
import { imagesOf } from "./ImageList.ts"

/** Bytes of a version.json; it has a dozen short values. */
const VERSION_BYTES_MAX = 16 * 1024

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(ImageVersionFile))

/** By the version.json that choird wrote with the image; `undefined` where it cannot be read. */
export const toolsDigest = (home: string, agent_id: AgentId, image_version: string): string | undefined => {
  const path = join(imagesOf(home, agent_id), image_version, "choir", "version.json")
  const text = Result.try(() => {
    const stat = lstatSync(path)
    return stat.isFile() && stat.size <= VERSION_BYTES_MAX ? readFileSync(path, "utf8") : ""
  })
  const version = Result.isSuccess(text) ? decode(text.success) : Option.none()
  return Option.isSome(version) ? version.value.tool_manifest_hash : undefined
}
