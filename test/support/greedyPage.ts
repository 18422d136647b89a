/** Stands in for the reading of a page that makes a map grow until no memory is left for a larger one. */
process.stdout.write('{"_tag":"Ready"}\n')
process.stdin.resume()
const all = new Map<number, number>()
for (let at = 0; ; at++) all.set(at, at)
