/** JSON of unknown shape, in texts that may be no JSON at all. */
import { Option, Schema } from "effect"

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** The value, or `undefined` when the text is not JSON. */
export const parseJson = (text: string): unknown => Option.getOrUndefined(decode(text))
