/** The files in a hostile agent's workspace by which the siege tells its program what to be, when to attack, and learns what it did. */

/** The program that runs in the place of choir-agent, where it is there. */
export const PROGRAM = ".siege.mjs"
/** The name of its attack. */
export const KIND = ".siege-kind"
/** There while it attacks. */
export const GO = ".siege-go"
/** What it counted, as JSON. */
export const TOLD = ".siege-told.json"

/** What the honest agents know and no hostile one may read. */
export const CANARY = /CANARY[0-9a-f]{24}/gu
