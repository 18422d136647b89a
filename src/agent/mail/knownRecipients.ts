/**
 * The people whom an account knows: those that the configuration lists, and those it has written to. To have sent it a mail is not
 * enough, since such a mail may ask for anything.
 */
import type { ImapFlow } from "imapflow"
import { Effect } from "effect"
import { sameAddress } from "./Draft.ts"
import { inFolder, openImap, sentFolder } from "./imap.ts"
import type { MailAccount } from "./MailAccount.ts"

/** Mails that are looked at for one address, the newest ones: servers find parts of addresses too. */
const LOOKED_AT_MAX = 50

const isListed = (address: string, { config }: MailAccount): boolean =>
  config.known_recipients.some((known) => {
    const listed = sameAddress(known)
    return listed.startsWith("@") ? address.endsWith(listed) : address === listed
  })

const PLACES = ["to", "cc", "bcc"] as const

const wrote = (client: ImapFlow, account: MailAccount, sent: string, address: string) =>
  inFolder(client, account, sent, true, async () => {
    for (const place of PLACES) {
      const uids = await client.search({ [place]: address, draft: false, deleted: false }, { uid: true })
      if (uids === false || uids === undefined || uids.length === 0) continue
      const newest = uids.slice(-LOOKED_AT_MAX).join(",")
      const found = await client.fetchAll(newest, { envelope: true }, { uid: true })
      const isThere = found.some(({ envelope }) =>
        (envelope?.[place] ?? []).some((person) => sameAddress(person.address ?? "") === address)
      )
      if (isThere) return true
    }
    return false
  })

/** The addresses that the account does not know. Without an answer of the server only those listed are known. */
export const unknownRecipients = Effect.fn("mail.unknownRecipients")(function* (
  account: MailAccount,
  addresses: ReadonlyArray<string>
) {
  const unlisted = addresses.map(sameAddress).filter((address) => !isListed(address, account))
  if (unlisted.length === 0) return unlisted
  const client = yield* openImap(account)
  const sent = yield* sentFolder(client, account)
  return yield* Effect.filter(unlisted, (address) =>
    Effect.map(wrote(client, account, sent, address), (isKnown) => !isKnown)
  )
}, Effect.scoped)
