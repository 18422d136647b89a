/** What an operator may ask of the database while choird runs (docs/operating.md). */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"

export const DatabaseApi = HttpApiGroup.make("database").add(
  /** The bytes of a backup file. A connection that is cut before the end of the body is a backup that failed. */
  HttpApiEndpoint.get("backup", "/database/backup", { success: HttpApiSchema.StreamUint8Array(), error: ApiErrors })
)
