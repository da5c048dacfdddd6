import type { Client } from './client.ts';

/** `client`, whose methods that change something first call `check` and reject with what it throws. Reads and reviews pass. */
export function fencedClient(client: Client, check: () => void): Client {
  const fenced =
    <A extends unknown[], R>(write: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      check();
      return write.apply(client, args);
    };
  return {
    get: (...args) => client.get(...args),
    list: (...args) => client.list(...args),
    isAllowed: (...args) => client.isAllowed(...args),
    raw: (...args) => client.raw(...args),
    create: fenced(client.create),
    mergePatch: fenced(client.mergePatch),
    jsonPatch: fenced(client.jsonPatch),
    replace: fenced(client.replace),
    apply: fenced(client.apply),
    delete: fenced(client.delete),
    createToken: fenced(client.createToken),
  };
}
