/** The number of cases of a property: a tenth of `most`, or all with FUZZ=all (`make fuzz`, `make faults`). */
export const runs = (most: number): number => (process.env['FUZZ'] === 'all' ? most : Math.ceil(most / 10));
