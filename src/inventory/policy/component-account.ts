import { accountPrefix } from '../../api/inventory/names.ts';

/** Whose calls come from an account of a component. */
export interface ComponentAccount {
  readonly namespace: string;
  readonly entryUid: string;
  readonly component: string;
}

const pattern = new RegExp(`^system:serviceaccount:([^:]+):${accountPrefix}([^.:]+)[.]([^.:]+)$`);

/** Reads a user name; undefined for everybody who is no component. */
export function readComponentAccount(username: string): ComponentAccount | undefined {
  const [, namespace, entryUid, component] = pattern.exec(username) ?? [];
  return namespace && entryUid && component ? { namespace, entryUid, component } : undefined;
}
