/** Stands in for the reading of a page that makes lists grow until no memory is left for a larger one. */
process.stdout.write('{"_tag":"Ready"}\n')
process.stdin.resume()
const all: Array<ReadonlyArray<number>> = []
for (;;) {
  const list: Array<number> = []
  list.length = 4_000_000
  all.push(list.fill(0.5))
}
