import { childNameSuffix } from '../../api/access/names.ts';

const NAME_LENGTH = 46;
const UID_LENGTH = 8;

/** The one name of a request's Pod, Role and RoleBinding: `<name, cut to 46>-<first 8 of the uid>-access`, at most 62 characters. */
export function childNameOf(request: { readonly name: string; readonly uid: string }): string {
  // A cut may end in a dash or dot, which no part of a DNS name may.
  const name = request.name.slice(0, NAME_LENGTH).replace(/[-.]+$/, '');
  return `${name}-${request.uid.slice(0, UID_LENGTH)}${childNameSuffix}`;
}
