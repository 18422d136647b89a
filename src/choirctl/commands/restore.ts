/** choirctl restore: a home from its backup. */
import { resolve } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import type { Found } from "#src/choirctl/backup/restoreHome.ts"
import { confirm, yesFlag } from "#src/choirctl/terminal/confirm.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { passphraseFlag, passphraseOf } from "#src/choirctl/terminal/passphrase.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { type Progress, withProgress } from "#src/choirctl/terminal/progress.ts"
import { requireFile } from "#src/choirctl/home/requireFile.ts"
import { foundText, restoredHomeText } from "#src/choirctl/render/backup.ts"
import { root } from "#src/choirctl/terminal/root.ts"

/** Sealed secrets need their passphrase, unless they are to stay out. */
const passphraseFor = ({ manifest }: Found, piped: boolean, without: boolean) =>
  !manifest.secrets.sealed || without
    ? Effect.undefined
    : passphraseOf("given", piped, "the secrets in the backup are sealed")

export const restore = Command.make(
  "restore",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription("A file of choirctl backup"),
      Argument.map((path) => resolve(path))
    ),
    to: Flag.String("to").pipe(
      Flag.withDescription("The new home; else that of --home or CHOIR_HOME"),
      Flag.withMetavar("<folder>"),
      Flag.optional
    ),
    without_secrets: Flag.Boolean("without-secrets").pipe(
      Flag.withDescription("Leave the sealed secrets out; their names are listed, to set them again"),
      Flag.withDefault(false)
    ),
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Restore sessions even if they do not verify"),
      Flag.withDefault(false)
    ),
    passphrase_stdin: passphraseFlag,
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ file, force, passphrase_stdin, to, without_secrets, yes }) {
    const { home } = yield* root
    yield* requireFile(file, "choirctl backup")
    const agree = Effect.fnUntraced(function* (found: Found) {
      if (found.occupied)
        yield* confirm({
          yes,
          about: [foundText(file, found), `${found.home} exists. It will be moved aside and kept.`],
          ask: "Put the backup in its place?",
          command: `choirctl restore ${shellQuoted(file)} --to ${shellQuoted(found.home)} --yes`
        })
      return yield* passphraseFor(found, passphrase_stdin, without_secrets)
    })
    const { restoreHome } = yield* Effect.promise(() => import("#src/choirctl/backup/restoreHome.ts"))
    type Agreed = ReturnType<typeof agree>
    const done = yield* restoreHome<Effect.Error<Agreed>, Effect.Services<Agreed> | Progress>({
      home: Option.match(to, { onNone: () => home, onSome: (path) => resolve(path) }),
      file,
      force,
      agree,
      step: withProgress
    })
    const { manifest, ...rest } = done
    const { members: _, ...contents } = manifest
    yield* print({ ok: true, path: file, ...rest, backup: contents }, restoredHomeText)
  }, onHost)
).pipe(
  Command.withDescription("Make a home from its backup, on the same path or another; choird must not run there"),
  Command.withExamples([
    { command: "choirctl restore choir.tar.gz" },
    { command: "choirctl restore choir.tar.gz --to /srv/choir --passphrase-stdin < passphrase.txt" }
  ])
)
