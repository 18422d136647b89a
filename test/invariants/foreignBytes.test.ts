/** Where Choir unpacks or parses what strangers made: each place is in a process without secrets, or is here with the reason why it need not be. */
import { readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { packageFolder } from "#src/shared/files/packageFolder.ts"

/** Modules that unpack, and packages that parse formats. */
const DECODER =
  /(?:from|import\()\s*"((?:node:)?zlib|@mozilla\/readability|linkedom|parse5|turndown|unpdf|ical\.js|postal-mime|imapflow|nodemailer|tar-stream|yaml|@energetic-ai\/[\w-]+)"|\b(?:De)?[Cc]ompressionStream\b|\bTextDecoder\(\s*(?!"utf-8")[^)\s]/u

/** The programs of closed processes, which nothing imports: of the local model, of one page, of one PDF, and of one mail. */
const CLOSED_PROGRAMS = [
  "src/agent/mail/mail-worker.ts",
  "src/choird/memory/embedding-worker.ts",
  "src/choird/workers/page-worker.ts",
  "src/choird/workers/pdf-worker.ts"
]

/** What these are made of, which nothing else may import. */
const CLOSED_MODULES = [
  "src/agent/mail/boundedMime.ts",
  "src/agent/mail/calendarText.ts",
  "src/agent/mail/mailPeople.ts",
  "src/agent/mail/mailWords.ts",
  "src/agent/mail/readMime.ts",
  "src/choird/workers/pageBody.ts",
  "src/choird/workers/pageMarkdown.ts",
  "src/choird/workers/pdfText.ts",
  "src/choird/workers/reportPage.ts",
  "src/shared/text/characterSet.ts",
  "src/shared/web/formValues.ts",
  "src/shared/web/htmlDocument.ts",
  "src/shared/web/htmlMarkdown.ts",
  "src/shared/web/htmlTables.ts",
  "src/shared/web/seenPage.ts"
]

/** Everything else, with the reason. */
const REASONS: Readonly<Record<string, string>> = {
  "src/agent/mail/mailClients.ts":
    "in the agent's sandbox: lines and literals with limits, compression of the connection is off, and no address of a draft is fetched",
  "src/choird/database/Backup.ts": "packs choird's own database",
  "src/choird/database/postgres-worker.ts": "unpacks the template that the build made",
  "src/choird/logs/LogArchive.ts": "packs choird's own logs",
  "src/choird/retention/archiveFile.ts": "packs choird's own archives",
  "src/choird/runtime/docker/BakedVersions.ts":
    "one file of at most some KiB out of a tar that the engine wrote; JavaScript alone",
  "src/choird/runtime/docker/runBuild.ts": "writes the tar of a build",
  "src/choird/sessions/archivedLog.ts": "unpacks choird's own archives, whose digests it has",
  "src/choirctl/backup/ArchiveReader.ts": "a backup that the operator names, sealed and read with limits",
  "src/choirctl/backup/ArchiveWriter.ts": "writes a backup",
  "src/choirctl/render/skillMarkdown.ts": "writes YAML",
  "src/choirctl/terminal/LogReader.ts": "unpacks choird's own logs, with a limit",
  "src/shared/events/BackupReader.ts": "a backup that the operator names, with limits",
  "src/shared/image/skillFolder.ts":
    "the front matter of a skill: at most 64 KiB, without anchors and tags, by JavaScript alone"
}

/** What sends HTTP requests, by the module that makes them. */
const HTTP_CLIENT =
  /[^.\w]fetch\((?!\s*session_id)|NodeHttpClient\.layer|\bnew undici\.|from "(?:undici|node-fetch)"|FetchHttpClient|\bhttps?Request\(|\.request\(url/u
const CLIENTS: Readonly<Record<string, string>> = {
  "src/choird/repos/Git.ts": "git's fetch, in a process of git",
  "src/choird/reconfiguration/loadHome.ts": "git's fetch, in a process of git",
  "src/choird/workers/WebProxy.ts": "the browser's: passes bodies on as they are",
  "src/choird/workers/webRequest.ts": "pages: the body goes as it is to the process of one page",
  "src/shared/wire/plainFetch.ts": "asks for plain bodies and refuses others",
  "src/shared/wire/undiciClient.ts": "asks for plain bodies and refuses others",
  "src/shared/wire/wayOut.ts": "the connections of the two above, through a proxy or not"
}

const sources = readdirSync(join(packageFolder, "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => `src/${name}`)
const codeOf = (path: string) =>
  readFileSync(join(packageFolder, path), "utf8").replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$|^import type .*$/gmu, "")
const matching = (pattern: RegExp) => sources.filter((path) => pattern.test(codeOf(path))).toSorted()

describe("bytes of strangers", () => {
  it("are unpacked and parsed in closed processes, or where this list says why not", () => {
    const closed = new Set([...CLOSED_PROGRAMS, ...CLOSED_MODULES])
    assert.deepStrictEqual(
      matching(DECODER).filter((path) => !closed.has(path)),
      Object.keys(REASONS).toSorted()
    )
  })

  it("are not decoded by another program that imports the modules of a closed process", () => {
    for (const path of [...CLOSED_PROGRAMS, ...CLOSED_MODULES]) {
      const importing = new RegExp(String.raw`(?:from|import\()\s*"(?:[^"]*/)?${basename(path)}"`, "u")
      const open = matching(importing).filter((each) => ![...CLOSED_PROGRAMS, ...CLOSED_MODULES].includes(each))
      assert.deepStrictEqual(open, [], path)
      if (CLOSED_PROGRAMS.includes(path)) assert.deepStrictEqual(matching(importing), [], path)
    }
  })

  it("come by HTTP clients that ask for plain bodies", () => {
    assert.deepStrictEqual(matching(HTTP_CLIENT), Object.keys(CLIENTS).toSorted())
  })
})
