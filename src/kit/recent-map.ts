/** At most `maxKeys` keys; drops those that were set longest ago. */
export class RecentMap<Key, Value> extends Map<Key, Value> {
  readonly #maxKeys: number;

  constructor(maxKeys: number) {
    super();
    this.#maxKeys = maxKeys;
  }

  override set(key: Key, value: Value): this {
    // The newest is last.
    this.delete(key);
    super.set(key, value);
    for (const oldest of this.keys()) {
      if (this.size <= this.#maxKeys) break;
      this.delete(oldest);
    }
    return this;
  }
}
