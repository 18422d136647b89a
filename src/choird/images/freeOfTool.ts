/** The arguments of a tool that are free text, by the manifest that an image has of it. */
import { lstatSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Option, Result, Schema } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { ToolManifest } from "#schema/Tool.ts"
import { BUILT_IN_FREE, BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { freeArguments, USUAL_FREE } from "#src/shared/image/freeArguments.ts"
import { MANIFEST_BYTES_MAX, type ToolScope } from "#src/shared/image/toolManifest.ts"
import { imagesOf } from "./ImageList.ts"

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(ToolManifest))

/** An agent's own tool overrides a global one of its name. */
const SCOPES: ReadonlyArray<ToolScope> = ["agent", "global"]

const manifestsIn = (folder: string): ReadonlyArray<ToolManifest> =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".json") && !name.startsWith("_"))
    .flatMap((name) => {
      const path = join(folder, name)
      const stat = lstatSync(path)
      const text = stat.isFile() && stat.size <= MANIFEST_BYTES_MAX ? readFileSync(path, "utf8") : ""
      return Option.toArray(decode(text))
    })

/** By the image that choird wrote; the usual ones where it cannot be read. A tool of Choir's own declares them itself. */
export const freeOfTool = (
  home: string,
  agent_id: AgentId,
  image_version: string,
  tool: string
): ReadonlyArray<string> => {
  if (BUILT_IN_TOOLS.includes(tool)) return BUILT_IN_FREE.get(tool) ?? []
  const tools = join(imagesOf(home, agent_id), image_version, "choir", "tools")
  const found = SCOPES.flatMap((scope) =>
    Result.getOrElse(
      Result.try(() => manifestsIn(join(tools, scope))),
      () => []
    )
  )
  const manifest = found.find(({ llm }) => llm.name === tool)
  return manifest === undefined ? USUAL_FREE : freeArguments(manifest.llm.input_schema)
}
