/** A field of each item, or, with several names, a list of these fields of each item. */
export function pluck<Item>(items: readonly Item[], first: keyof Item, ...others: (keyof Item)[]): unknown[] {
  return items.map((item) => (others.length === 0 ? item[first] : [first, ...others].map((name) => item[name])));
}
