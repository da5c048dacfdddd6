import { readFileSync, writeFileSync } from 'node:fs';

/** `make images`: gives people time to read each event of an asciicast: 0.4 s a line before the next, and at most 2 s without output. */
const [path = ''] = process.argv.slice(2);
const [header, ...lines] = readFileSync(path, 'utf8').trimEnd().split('\n');
let beforeS = 0;
let toReadS = 0;
let shownS = 0;
const events = lines.map((line) => {
  const [atS, code, text]: [number, string, string] = JSON.parse(line);
  shownS += Math.max(toReadS, Math.min(atS - beforeS, 2));
  beforeS = atS;
  toReadS = 0.4 * (text.split('\n').length - 1);
  return JSON.stringify([Number(shownS.toFixed(2)), code, text]);
});
const end = JSON.stringify([Number((shownS + 6).toFixed(2)), 'o', '']);
writeFileSync(path, `${[header, ...events, end].join('\n')}\n`);
