/** A PDF of some pages, each with lines of text in ASCII. */
export const smallPdf = (pages: ReadonlyArray<ReadonlyArray<string>>, title = ""): Buffer => {
  const escaped = (text: string) => text.replaceAll(/[\\()]/gu, String.raw`\$&`)
  const streams = pages.map((lines) => {
    const text = lines.map((line) => `(${escaped(line)}) Tj T*`).join("\n")
    return `BT /F1 12 Tf 14 TL 72 720 Td\n${text}\nET`
  })
  const kids = pages.map((_, at) => `${4 + 2 * at} 0 R`).join(" ")
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ...streams.flatMap((stream, at) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + 2 * at} 0 R >>`,
      `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`
    ]),
    `<< /Title (${escaped(title)}) >>`
  ]
  let file = "%PDF-1.4\n"
  const places = objects.map((object, at) => {
    const place = file.length
    file += `${at + 1} 0 obj\n${object}\nendobj\n`
    return place
  })
  const table = places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("")
  const trailer = `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R /Info ${objects.length} 0 R >>`
  return Buffer.from(
    `${file}xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}${trailer}\nstartxref\n${file.length}\n%%EOF\n`,
    "latin1"
  )
}
