/** The reader of JSON in the form that can be bundled: a sandbox has no packages. */
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/** The package, as programs import it. */
export const JSON_READER = "jsonc-parser"

/** The module to bundle in its place. */
export const JSON_READER_MODULE = join(dirname(fileURLToPath(import.meta.resolve(JSON_READER))), "../esm/main.js")
