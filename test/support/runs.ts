/** How many cases a property is tried with: a tenth of `most`, or all of them where FUZZ=all says so (`make fuzz`, `make faults`). */
export const runs = (most: number): number => (process.env['FUZZ'] === 'all' ? most : Math.ceil(most / 10));
