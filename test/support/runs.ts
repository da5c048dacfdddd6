/** How many cases a property is tried with: a quarter of `most`, or all of them where FUZZ=all says so (`make fuzz`). */
export const runs = (most: number): number => (process.env['FUZZ'] === 'all' ? most : Math.ceil(most / 4));
