/** A command with secrets beside another one of its agent that looks for them, with and without the kernel's help. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Redacted } from "effect"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import type { Command } from "#src/agent/process/startCommand.ts"
import { APART, APART_PROGRAM } from "../../support/apartProgram.ts"
import { leaveOut } from "../../support/packages.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { callIdOf } from "../../support/workspace.ts"
import { existsSync, watch } from "node:fs"
import { join } from "node:path"

const SECRET = "CANARYBESIDE0123456789"
const leftOut = APART.level === "none" ? leaveOut("secrets beside a command", "the kernel has no Landlock") : undefined

/** Holds its secret in memory until another command has looked, or for two seconds if none begins to; says which it was. */
const HOLDS = `perl -e 'open(F, "<&=", $ENV{CHOIR_SECRETS_FD}); $s = <F>; open(R, ">", "held"); close R;
for (1 .. 100) { last if -e "looking"; select(undef, undef, undef, 0.02) }
if (-e "looking") { select(undef, undef, undef, 0.02) until -e "looked"; print "beside it" } else { print "alone" }'`

/** Looks once through the memory of the processes that name the secret's descriptor, and says what it found, reversed. */
const LOOKS = `: > looking; perl -e '
for my $p (glob "/proc/[0-9]*") { open(C, "<", "$p/cmdline"); <C> =~ /CHOIR_SECRETS/ or next;
  open(M, "<", "$p/maps") or next; open(X, "<", "$p/mem") or next;
  while (<M>) { my ($a, $b) = /^(\\w+)-(\\w+) rw/ or next; my ($f, $t) = (hex $a, hex $b); next if $t - $f > 1 << 24;
    sysseek(X, $f, 0); sysread(X, my $text, $t - $f) or next; print scalar reverse($&), "\\n" if $text =~ /CANARY[A-Z]{6}[0-9]{10}/ } }
print "looked\\n"'; : > looked`

const appears = (folder: string, name: string) =>
  Effect.callback<void>((resume) => {
    const look = () => {
      if (existsSync(join(folder, name))) resume(Effect.void)
    }
    const watcher = watch(folder, look)
    look()
    return Effect.sync(() => watcher.close())
  })

/** What the command with the secret says of the other one, and what that one says. */
const beside = Effect.gen(function* () {
  const processes = yield* ProcessRunner
  const cwd = yield* temporaryFolder
  const run = (name: string, command: string, more: Partial<Command> = {}) =>
    Effect.map(
      processes.run(callIdOf(`${name}-1-1-0`), {
        command: "/bin/sh",
        args: ["-c", command],
        cwd,
        timeout_ms: 120_000,
        ...more
      }),
      ({ stdout }) => stdout.text
    )
  const holder = yield* Effect.forkScoped(run("holder", HOLDS, { secrets: Redacted.make(SECRET) }))
  yield* appears(cwd, "held")
  const looked = yield* run("looker", LOOKS)
  return { held: yield* Fiber.join(holder), looked }
})

describe("a command beside one with secrets", () => {
  it.live.skipIf(leftOut !== undefined)("finds them nowhere", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* beside, { held: "beside it", looked: "looked\n" })
    }).pipe(Effect.scoped, Effect.provide(ProcessRunner.layer({ ownsPidNamespace: false, apart: APART })))
  )

  it.live("begins only after it where the kernel does not keep commands apart", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* beside, { held: "alone", looked: "looked\n" })
    }).pipe(
      Effect.scoped,
      Effect.provide(ProcessRunner.layer({ ownsPidNamespace: false, apart: { program: APART_PROGRAM, level: "none" } }))
    )
  )
})
