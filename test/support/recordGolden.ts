/**
 * Records what a golden history folds to (R69): `node test/support/recordGolden.ts SESSION_ID test/shared/session/golden/NAME.jsonl`
 * writes NAME.json beside the lines that `choirctl session events --json` printed.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { SessionId } from "#schema/Ids.ts"
import { FOLD_VERSION } from "#src/shared/session/snapshot.ts"
import { foldGolden, type GoldenRecord, readGolden, stateOf } from "./golden.ts"

const [, , id = "", path = ""] = process.argv
const session_id = SessionId.make(id)
const { hash, state } = foldGolden(session_id, readGolden(readFileSync(path, "utf8")))
const record: GoldenRecord = {
  session_id,
  fold_version: FOLD_VERSION,
  events: state.rev,
  head: hash.toString("hex"),
  state: stateOf(state)
}
writeFileSync(path.replace(/\.jsonl$/u, ".json"), `${JSON.stringify(record, undefined, 2)}\n`)
