import { lookup as systemLookup } from 'node:dns/promises';
import { once } from 'node:events';
import { BlockList, connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { CodedError } from '../kit/errors.ts';

interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** As `lookup` of node:dns/promises with `all`. */
export type Lookup = (host: string, options: { readonly all: true }) => Promise<readonly ResolvedAddress[]>;

/** At least one address that may be called. Rejects with CodedError `AddressNotAllowed`. */
export type Resolve = (host: string) => Promise<readonly ResolvedAddress[]>;

/** Of the registries of special addresses (RFC 6890), and the metadata service of Azure. */
const specialIpv4 =
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 ' +
  '192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 ' +
  '198.51.100.0/24 203.0.113.0/24 224.0.0.0/3';
/** All others embed IPv4 addresses, are local, or are reserved. */
const globalIpv6 = '2000::/3';
/** Within it: protocols (such as Teredo), documentation, 6to4, AS112. */
const specialIpv6 = '2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20';

/** BlockList would match IPv4 addresses with ranges of IPv6, such as `::/0`, so each has its own. */
class Ranges {
  readonly #lists = { ipv4: new BlockList(), ipv6: new BlockList() };

  constructor(ranges: readonly string[]) {
    for (const range of ranges) {
      const [address = '', bits] = range.split('/');
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
      this.#lists[family].addSubnet(address, Number(bits), family);
    }
  }

  /** Never an address with a zone, such as `fe80::1%eth0`. */
  has({ address, family }: ResolvedAddress): boolean {
    const type = family === 6 ? 'ipv6' : 'ipv4';
    return this.#lists[type].check(address, type);
  }
}

const special = new Ranges(`${specialIpv4} ${specialIpv6}`.split(' '));
const global = new Ranges(['0.0.0.0/0', globalIpv6]);

/**
 * Without it, an owner of a namespace could probe the network of the cluster through the server.
 * The caller must connect to the result, because a second resolution may yield another address.
 * `allowed`: CIDRs that are called although they are not public.
 */
export function createResolve(allowed: readonly string[], lookup: Lookup = systemLookup): Resolve {
  const exceptions = new Ranges(allowed);
  return async (host) => {
    const family = isIP(host);
    const found = family === 0 ? await lookup(host, { all: true }) : [{ address: host, family }];
    const usable = found.filter((address) => exceptions.has(address) || (global.has(address) && !special.has(address)));
    // Without the addresses, which may be internal.
    if (usable.length === 0) {
      throw new CodedError(
        'AddressNotAllowed',
        `${host} has no public address; allowed are public addresses and those that an administrator lists; use another address or ask an administrator`,
      );
    }
    return usable;
  };
}

/** For `connect` of node:net and node:tls: resolves to these addresses, whatever the name. */
export const lookupIn =
  (addresses: readonly ResolvedAddress[]): LookupFunction =>
  (_, { all }, callback) => {
    const [first] = addresses;
    if (all || first === undefined) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };

/** Without TLS. */
export async function connectTo(
  { host, port, addresses }: { host: string; port: number; addresses: readonly ResolvedAddress[] },
  signal: AbortSignal,
): Promise<Socket> {
  const socket = connect({ host, port, lookup: lookupIn(addresses) });
  try {
    await once(socket, 'connect', { signal });
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return socket;
}
