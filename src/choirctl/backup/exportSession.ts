/** A session's events in a file, as `session events --json` prints them, with a manifest that says where they end. */
import { createHash } from "node:crypto"
import { existsSync, writeFileSync } from "node:fs"
import { basename } from "node:path"
import { Clock, Effect, Stream } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { ask, askStream } from "#src/choirctl/client/ask.ts"
import { printedEvent, wholeEvent } from "#src/choirctl/render/printedEvent.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { jsonText } from "#src/choirctl/terminal/text.ts"
import { VERSION } from "#src/shared/program/version.ts"
import { freshFile, onFile, putInPlace } from "./freshFiles.ts"

const FORMAT = "choir-session-export/1"

/** Writes what there is when it begins, with or without the reasoning of models. The last event has to have the hash of the session's own row. */
export const exportSession = Effect.fn("choirctl.exportSession")(function* (
  id: SessionId,
  path: string,
  reasoning: boolean
) {
  const manifest = `${path}.manifest.json`
  for (const place of [path, manifest])
    if (existsSync(place)) return yield* failed("FILE_EXISTS", `${place} already exists`, "choose another file")
  const { head, last_rev, ...detail } = yield* ask("session", (choird) => choird.show({ params: { id } }))
  const events = yield* freshFile(path)
  const digest = createHash("sha256")
  let [count, bytes, last] = [0, 0, ""]
  yield* askStream("sessions", (choird) => choird.events({ params: { id }, query: {} })).pipe(
    Stream.map(reasoning ? wholeEvent : printedEvent),
    Stream.takeWhile(({ rev }) => rev <= last_rev),
    Stream.runForEach((printed) =>
      onFile(path, () => {
        const line = `${jsonText(printed)}\n`
        writeFileSync(events.descriptor, line)
        digest.update(line)
        count += 1
        bytes += Buffer.byteLength(line)
        last = printed.hash
      })
    )
  )
  if (count !== last_rev || (last_rev > 0 && last !== head))
    return yield* failed(
      "SESSION_BROKEN",
      `the events of ${id} end at revision ${count} with the hash ${last}, but the database says revision ${last_rev} and hash ${head}`,
      `choirctl session verify ${id}`
    )
  const { agent_id, ended_at, epoch, image_version, started_at, status } = detail
  const content = {
    format: FORMAT,
    session_id: id,
    agent_id,
    status,
    started_at,
    ended_at,
    epoch,
    image_version,
    events: count,
    head,
    file: basename(path),
    bytes,
    sha256: digest.digest("hex"),
    exported_at: new Date(yield* Clock.currentTimeMillis).toISOString(),
    choir: VERSION
  }
  const beside = yield* freshFile(manifest)
  yield* onFile(manifest, () => writeFileSync(beside.descriptor, `${JSON.stringify(content, undefined, 2)}\n`))
  yield* putInPlace(path, events.fresh, events.descriptor)
  yield* putInPlace(manifest, beside.fresh, beside.descriptor)
  return { path, manifest, session_id: id, events: count, head, bytes }
}, Effect.scoped)
