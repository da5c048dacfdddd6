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
