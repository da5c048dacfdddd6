import { CodedError, quote } from '../kit/errors.ts';
import { isRecord } from '../kit/json-value.ts';
import { parseJson } from '../kit/safe-json.ts';

/** The dot-atoms of RFC 5322 and a host name: no quotes, comments, names, or line breaks. */
const syntax =
  /^(?=.{3,254}$)[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;

export const isMailAddress = (text: string): boolean => syntax.test(text) && text.indexOf('@') <= 64;

export const maxRecipients = 20;

/** Undefined if it is not a list of 1 to 20 addresses with commas between them. */
export function parseRecipients(list: string): readonly string[] | undefined {
  const addresses = list.split(',').map((address) => address.trim());
  return addresses.length <= maxRecipients && addresses.every(isMailAddress) ? addresses : undefined;
}

/** Of a user: as an administrator says, else the user name if it is one. */
export const addressOfUser =
  (known: ReadonlyMap<string, string>) =>
  (user: string): string | undefined =>
    known.get(user) ?? (isMailAddress(user) ? user : undefined);

/**
 * The chart value `notify.addresses`: a JSON object of addresses by user name.
 * @throws CodedError `InvalidAddresses` for an invalid entry; JsonError
 */
export function parseAddresses(bytes: Uint8Array): ReadonlyMap<string, string> {
  const addresses = parseJson(bytes);
  if (!isRecord(addresses)) throw new CodedError('InvalidAddresses', 'the file must be an object of addresses by user');
  for (const [user, address] of Object.entries(addresses)) {
    if (typeof address === 'string' && isMailAddress(address)) continue;
    const found = `the address of ${quote(user)} is ${quote(typeof address === 'string' ? address : typeof address)}`;
    throw new CodedError('InvalidAddresses', `${found}; it must be one mail address, such as alice@example.org`);
  }
  return new Map(Object.entries(addresses) as [string, string][]);
}
