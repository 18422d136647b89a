/** The people in a header of a mail: groups, names with commas, and domains in letters of any script. Pure. */
import { domainToASCII } from "node:url"
import { type Address, addressParser, type Email } from "postal-mime"
import { MAIL_PEOPLE_MAX, type MailPerson } from "./mailProtocol.ts"

/** An address by which its owner can be written to: its domain as mail servers write it. */
const asciiAddress = (address: string): string => {
  const at = address.lastIndexOf("@")
  const domain = at === -1 ? "" : domainToASCII(address.slice(at + 1))
  return domain === "" ? address : `${address.slice(0, at)}@${domain}`
}

/** Joins what an unquoted comma in a name took apart: `Lovelace, Ada <ada@example.org>`. */
const joined = (people: ReadonlyArray<MailPerson>): ReadonlyArray<MailPerson> => {
  const found: Array<MailPerson> = []
  let before = ""
  for (const { address, name } of people) {
    const whole = [before, name].filter((part) => part !== "").join(", ")
    if (address === "") before = whole
    else {
      found.push({ name: whole, address })
      before = ""
    }
  }
  return found
}

const flat = (people: ReadonlyArray<Address>): ReadonlyArray<MailPerson> =>
  joined(
    people
      .flatMap((person) => person.group ?? [person])
      .map(({ address, name }) => ({ name: name.trim(), address: asciiAddress(address.trim()) }))
  )

/** The people of the headers of one name. */
export const peopleOf = ({ headers }: Pick<Email, "headers">, key: string): ReadonlyArray<MailPerson> =>
  headers
    .filter((header) => header.key === key)
    .flatMap(({ value }) => flat(addressParser(value)))
    .slice(0, MAIL_PEOPLE_MAX)

/** The sender, by the first header that says one. */
export const senderOf = ({ headers }: Pick<Email, "headers">): MailPerson => {
  const first = headers.find((header) => header.key === "from")
  const [named] = first === undefined ? [] : addressParser(first.value)
  return (
    peopleOf({ headers: first === undefined ? [] : [first] }, "from")[0] ?? { name: named?.name ?? "", address: "" }
  )
}
