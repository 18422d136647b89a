/** The middleware of both APIs. In a file of its own, so that a client of one API does not load the other. */
import { HttpApiMiddleware } from "effect/http-api"
import { BadRequest, Internal } from "./ApiError.ts"

/** Turns what does not decode into 400 with the paths, and never with the values. */
export class SchemaErrors extends HttpApiMiddleware.Service<SchemaErrors>()("choir/schema/SchemaErrors", {
  error: [BadRequest, Internal]
}) {}
