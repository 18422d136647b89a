/** The wizard's questions about Telegram: the bot, and the phone of the person who sets the home up. */
import { Effect, Option } from "effect"
import { SecretName } from "#schema/Ids.ts"
import { TELEGRAM_API_ROOT, tryBot } from "#src/choirctl/doctor/serviceChecks.ts"
import { TELEGRAM_SECRET } from "#src/choirctl/home/initHome.ts"
import { secretValue, setSecret } from "#src/choirctl/home/secretsFile.ts"
import { personName } from "#src/choirctl/home/personName.ts"
import type { Given } from "#src/choirctl/home/setupAnswers.ts"
import { answered, type SetupDraft } from "#src/choirctl/home/setupDraft.ts"
import { withProgress } from "#src/choirctl/terminal/print.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { newPairingCode, PAIRING_MS_MAX, shownPairingCode } from "#src/shared/text/pairingCode.ts"
import { awaitCode } from "./pairPhone.ts"
import { askNextForBot, askToken, askUserId } from "./wizardQuestions.ts"

/** Whether there is a bot, tried as far as the person wants. */
const botQuestions = Effect.fnUntraced(function* (home: string, draft: SetupDraft, given: Given) {
  const screen = yield* Screen
  const secret = SecretName.make(TELEGRAM_SECRET)
  const api_root = given.telegram_api_root ?? TELEGRAM_API_ROOT
  const without = Effect.as(draft.keep({ without_telegram: true }), false)
  while (draft.answers().bot_accepted !== true) {
    if (draft.answers().without_telegram === true) return false
    const typed = yield* askToken
    if (typed === undefined) {
      if ((given.telegram_user_id ?? "") === "") return yield* without
      yield* screen.note(`Set it later: choirctl secret set ${secret}`)
      yield* draft.keep({ bot_accepted: true })
      break
    }
    yield* setSecret(home, secret, typed)
    const tried = yield* Effect.result(tryBot(api_root, typed).pipe(withProgress("asking Telegram")))
    if (tried._tag === "Success") {
      yield* screen.note(`The bot is @${safeLine(tried.success)}`)
      yield* draft.keep({ bot_accepted: true })
      break
    }
    yield* screen.note(`${tried.failure.problem}. ${tried.failure.fix}.`)
    const next = yield* askNextForBot
    if (next === "keep") yield* draft.keep({ bot_accepted: true })
    if (next === "without") return yield* without
  }
  return true
})

/** The person's id on Telegram: the bot is sent a code while the question stands, or the id is typed; empty for later. */
const phoneQuestion = Effect.fnUntraced(function* (home: string, draft: SetupDraft, given: Given) {
  const screen = yield* Screen
  const api_root = given.telegram_api_root ?? TELEGRAM_API_ROOT
  const token = yield* secretValue(home, SecretName.make(TELEGRAM_SECRET))
  const name = token === undefined ? undefined : yield* Effect.option(tryBot(api_root, token))
  if (token === undefined || name === undefined || Option.isNone(name)) return yield* askUserId(false)
  const code = newPairingCode()
  yield* screen.note(`Send this to @${name.value} on Telegram: ${shownPairingCode(code)}`)
  yield* screen.note(`or open https://t.me/${name.value}?start=${code}`)
  const sent = awaitCode({ api_root, token }, code).pipe(
    // Below the question may be why an earlier answer was refused: the news is written in place of it.
    Effect.tap(() => screen.draw("\n\u001b[J")),
    Effect.tapError(({ message }) => screen.note(`\nNo code is waited for: ${message}.`)),
    Effect.timeoutOrElse({ duration: PAIRING_MS_MAX, orElse: () => Effect.never }),
    Effect.orElseSucceed(() => undefined),
    Effect.flatMap((sender) => (sender === undefined ? Effect.never : Effect.succeed({ ...sender, paired: true })))
  )
  const typed = Effect.map(askUserId(true), (id) => ({ id, first_name: undefined, paired: false }))
  const { first_name, id, paired } = yield* Effect.raceFirst(sent, typed)
  if (first_name !== undefined) yield* draft.keep({ telegram_first_name: first_name })
  if (paired)
    yield* screen.note(`Your phone is paired: the Telegram user ${id} is the admin, as ${personName(first_name)}`)
  return id
})

/** The bot of a new home and the person at it; undefined where there is none. */
export const telegramQuestions = Effect.fnUntraced(function* (home: string, draft: SetupDraft, given: Given) {
  if (!(yield* botQuestions(home, draft, given))) return undefined
  const user_id = yield* answered(draft, "telegram_user_id", phoneQuestion(home, draft, given))
  const first_name = draft.answers().telegram_first_name
  const api_root = given.telegram_api_root
  return { user_id: user_id === "" ? undefined : user_id, first_name, token: undefined, api_root }
})
