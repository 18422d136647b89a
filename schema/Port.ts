/** A port of TCP. */
import { Schema } from "effect"

export const PORT_MAX = 65_535
/** The port of https, and of an address that names none. */
export const HTTPS_PORT = 443

export const Port = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: PORT_MAX }))
