/**
 * Runs once around the tests: as root, a program that is told to write its output to `/dev/null` by a rename replaces the device with a file,
 * and each test after it fails for another reason.
 */
import { statSync } from "node:fs"

const requireDevice = (when: string): void => {
  if (!statSync("/dev/null").isCharacterDevice())
    throw new Error(`/dev/null is a file and not a device ${when}. Fix: rm /dev/null && mknod -m 666 /dev/null c 1 3`)
}

export default () => {
  requireDevice("before the tests")
  return () => requireDevice("after the tests, so a test replaced it")
}
