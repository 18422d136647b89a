/**
 * Reads a mail in a process of its own, which ends with the mail: its author's bytes are unpacked and parsed where no password is, without files, a network
 * and other programs' memory. What that process says of the mail is a stranger's as well.
 */
import { Effect, Option, Schema } from "effect"
import type { CallId } from "#schema/Ids.ts"
import type { ProcessResult, ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { MailProblem } from "./MailAccount.ts"
import { type MailOrder, MailReport } from "./mailProtocol.ts"
import { type ShownMail, shownMail } from "./shownMail.ts"

/** Reading one mail, with the start of its process. */
const MAIL_MS_MAX = 20_000
/** Its heap and stack, below the 8 MiB that Linux gives a process. */
const MAIL_HEAP_MB_MAX = 256
const MAIL_STACK_KB_MAX = 3500
/** A report, and one with the bytes of the files: those of the largest mail. */
const REPORT_BYTES_MAX = 4 * 1024 * 1024
const FILES_BYTES_MAX = 48 * 1024 * 1024

const FLAGS = [
  "--permission",
  "--disable-sigusr1",
  `--max-old-space-size=${MAIL_HEAP_MB_MAX}`,
  `--stack-size=${MAIL_STACK_KB_MAX}`
]

export type MailReader = (raw: Uint8Array) => Effect.Effect<ShownMail, MailProblem>

export interface MailReading extends MailOrder {
  readonly processes: ProcessRunner["Service"]
  /** The path of the program. */
  readonly program: string
  readonly call_id: CallId
}

const decodeReport = Schema.decodeUnknownOption(Schema.fromJsonString(MailReport))

const unreadable = (why: string) => new MailProblem({ problem: `the mail cannot be read: ${why}` })

const problemOf = ({ exit_code, signal, stdout, timed_out }: ProcessResult): string => {
  if (timed_out) return `it takes more than ${MAIL_MS_MAX} ms`
  if (stdout.dropped > 0) return "its report is too long"
  return signal === "SIGABRT" || exit_code === 134 ? "it takes too much memory" : "its process ended"
}

/** How a mail of this call is read. */
export const mailReader =
  ({ call_id, processes, program, withFiles }: MailReading): MailReader =>
  (raw) =>
    Effect.gen(function* () {
      const order: MailOrder = { withFiles }
      const result = yield* processes.run(call_id, {
        command: process.execPath,
        args: [...FLAGS, `--allow-fs-read=${program}`, program],
        cwd: "/",
        timeout_ms: MAIL_MS_MAX,
        stdin: Buffer.concat([Buffer.from(`${JSON.stringify(order)}\n`), raw]),
        offline: processes.cutsNetwork,
        stdout_bytes_max: withFiles ? FILES_BYTES_MAX : REPORT_BYTES_MAX
      })
      const report = Option.getOrUndefined(decodeReport(result.stdout.text))
      if (report === undefined) return yield* unreadable(problemOf(result))
      if (report._tag === "Refused")
        return yield* unreadable(
          report.max === undefined ? `it is ${report.why}` : `it has more than ${report.max} ${report.why}`
        )
      return shownMail(report)
    }).pipe(
      Effect.catchTags({
        CommandNotStarted: ({ message }) => Effect.fail(unreadable(message)),
        StrayProcesses: ({ message }) => Effect.fail(unreadable(message)),
        NoTurn: ({ message }) => Effect.fail(unreadable(message))
      }),
      Effect.withSpan("mail.readApart")
    )
