/**
 * The number of cases of a property: `most` with FUZZ=all (`make fuzz`, `make faults`), a tenth of it with FUZZ=tenth (`make test`), else
 * `few` (`make check`), by default a thirtieth.
 */
export function runs(most: number, few = Math.ceil(most / 30)): number {
  const fuzz = process.env['FUZZ'];
  if (fuzz === 'all') return most;
  return fuzz === 'tenth' ? Math.ceil(most / 10) : few;
}
