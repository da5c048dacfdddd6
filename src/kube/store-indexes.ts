type IndexFunction<T> = (object: T) => readonly string[];

/** Each index maps a value to the objects with that value, by their keys. */
export class StoreIndexes<T extends { readonly key: string }> {
  readonly #functions = new Map<string, IndexFunction<T>>();
  /** By name of the index, then by value, then by key of the object. */
  readonly #entries = new Map<string, Map<string, Map<string, T>>>();

  /** Each name is free or has the same function. */
  accepts(functions: Readonly<Record<string, IndexFunction<T>>>): boolean {
    return Object.entries(functions).every(([name, valuesOf]) => (this.#functions.get(name) ?? valuesOf) === valuesOf);
  }

  /** Only those whose names are free, filled with `objects`. */
  add(functions: Readonly<Record<string, IndexFunction<T>>>, objects: readonly T[]): void {
    for (const [name, valuesOf] of Object.entries(functions)) {
      if (this.#functions.has(name)) continue;
      this.#functions.set(name, valuesOf);
      const values = new Map<string, Map<string, T>>();
      this.#entries.set(name, values);
      for (const object of objects) put(values, valuesOf(object), object);
    }
  }

  replace(before: T | undefined, now: T | undefined): void {
    for (const [name, valuesOf] of this.#functions) {
      const values = this.#entries.get(name);
      if (!values) continue;
      if (before) drop(values, valuesOf(before), before.key);
      if (now) put(values, valuesOf(now), now);
    }
  }

  /** Throws RangeError if no index has the name. */
  get(name: string, value: string): readonly T[] {
    const values = this.#entries.get(name);
    if (!values)
      throw new RangeError(`the store has no index "${name}"; it has: ${[...this.#entries.keys()].join(', ')}`);
    return [...(values.get(value)?.values() ?? [])];
  }
}

function put<T extends { readonly key: string }>(
  values: Map<string, Map<string, T>>,
  indexValues: readonly string[],
  object: T,
): void {
  for (const value of indexValues) {
    const objects = values.get(value) ?? new Map<string, T>();
    values.set(value, objects.set(object.key, object));
  }
}

function drop<T>(values: Map<string, Map<string, T>>, indexValues: readonly string[], key: string): void {
  for (const value of indexValues) {
    const objects = values.get(value);
    objects?.delete(key);
    if (objects?.size === 0) values.delete(value);
  }
}
