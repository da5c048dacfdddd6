import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { BlockList, connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { CodedError } from '../kit/errors.ts';

interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Rejects if there is none. */
export type Lookup = (host: string) => Promise<readonly ResolvedAddress[]>;

/**
 * By the DNS servers of this machine, or those given. Unlike `dns.lookup`, which has four threads, a
 * name that is never answered delays no other. It reads no hosts file and has no search list.
 */
export const lookupByDns =
  (servers?: readonly string[]): Lookup =>
  async (host) => {
    const resolver = new Resolver({ timeout: 1_000, tries: 2 });
    if (servers) resolver.setServers(servers);
    // As RFC 6761 says.
    if (/^(.+\.)?localhost$/.test(host)) return [{ address: '127.0.0.1', family: 4 }];
    const ipv4 = resolver.resolve4(host);
    const found = await Promise.allSettled([ipv4, resolver.resolve6(host)]);
    const addresses = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    if (addresses.length === 0) await ipv4;
    return addresses.map((address) => ({ address, family: isIP(address) }));
  };

/** At least one address that may be called. Rejects with CodedError `AddressNotAllowed`. */
export type Resolve = (host: string) => Promise<readonly ResolvedAddress[]>;

/** Never has an address with a zone, such as `fe80::1%eth0`. */
function rangesOf(cidrs: readonly string[]): (address: ResolvedAddress) => boolean {
  // One would match IPv4 addresses with ranges of IPv6, such as `::/0`.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const cidr of cidrs) {
    const [address = '', bits] = cidr.split('/');
    const type = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    lists[type].addSubnet(address, Number(bits), type);
  }
  return ({ address, family }) => (family === 6 ? lists.ipv6.check(address, 'ipv6') : lists.ipv4.check(address));
}

/** Of the registry of RFC 6890 those that may be near, and the metadata service of Azure. */
const isSpecial = rangesOf([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/3',
  // Protocols such as Teredo, and 6to4: these embed IPv4 addresses.
  '2001::/23',
  '2002::/16',
]);
/** All other addresses of IPv6 embed those of IPv4, are local, or are reserved. */
const isGlobal = rangesOf(['0.0.0.0/0', '2000::/3']);

/**
 * Without it, an owner of a namespace could probe the network of the cluster through the server.
 * The caller must connect to the result, because a second resolution may yield another address.
 * `allowed`: CIDRs that are called although they are not public.
 */
export function createResolve(allowed: readonly string[], lookup: Lookup = lookupByDns()): Resolve {
  const isAllowed = rangesOf(allowed);
  return async (host) => {
    const family = isIP(host);
    const found = family === 0 ? await lookup(host) : [{ address: host, family }];
    const usable = found.filter((address) => isAllowed(address) || (isGlobal(address) && !isSpecial(address)));
    // Without the addresses, which may be internal.
    if (usable.length === 0) {
      throw new CodedError(
        'AddressNotAllowed',
        `${host} has no public address; allowed are public addresses and those of the chart value notify.allowedCIDRs; use another address, or ask an administrator`,
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
  const socket = connect({ host, port, lookup: lookupIn(addresses), signal });
  await once(socket, 'connect');
  return socket;
}
