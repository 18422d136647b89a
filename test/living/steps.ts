/** What people do in a step of a day. */
import type { Step } from "./Day.ts"
import { PEOPLE, type Person } from "./Home.ts"

type Time = Step["at"]

export const writes = (who: Person, at: Time, text: string, until: string): Step => ({
  at,
  act: ({ bot }) => bot.text(PEOPLE[who], text),
  until
})

const JPEG = Uint8Array.from([
  0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 0xff, 0xd9
])

export const sendsPhoto = (at: Time, until: string): Step => ({
  at,
  act: ({ bot }) => bot.file(PEOPLE.Ada, "photo", { name: "photo.jpg", mime: "image/jpeg", bytes: JPEG }),
  until
})
