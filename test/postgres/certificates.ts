// X.509 certificates for tests of TLS, made with Node's own crypto: DER by hand, keys on the curve P-256.

import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

export interface Certificate {
  /** PEM. */
  certificate: string;
  /** PEM. */
  key: string;
}

export interface Authority extends Certificate {
  /** `ip`: an IPv4 address. A certificate counts from yesterday; one that is `expired`, until an hour ago. */
  issue(subject: { ip?: string; dns?: string; expired?: boolean }): Certificate;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export function newAuthority(name: string): Authority {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const make = (subject: string, key: KeyObject, extension: Buffer, untilMs: number) =>
    pem(signed(body({ issuer: name, subject, key, extension, untilMs }), privateKey));
  const pemOf = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" }).toString();
  return {
    certificate: make(name, publicKey, IS_AUTHORITY, DAY_MS),
    key: pemOf(privateKey),
    issue({ ip, dns, expired = false }) {
      const own = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const names = alternativeNames(ip, dns);
      const certificate = make(`${name} server`, own.publicKey, names, expired ? -HOUR_MS : DAY_MS);
      return { certificate, key: pemOf(own.privateKey) };
    },
  };
}

interface Body {
  issuer: string;
  subject: string;
  key: KeyObject;
  extension: Buffer;
  /** From now on. */
  untilMs: number;
}

function body({ issuer, subject, key, extension, untilMs }: Body): Buffer {
  const now = Date.now();
  return sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])), // serial number, positive
    ECDSA_WITH_SHA256,
    nameOf(issuer),
    sequence(time(now - DAY_MS), time(now + untilMs)),
    nameOf(subject),
    key.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(extension)),
  );
}

function signed(content: Buffer, key: KeyObject): Buffer {
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign("sha256", content, key)]));
  return sequence(content, ECDSA_WITH_SHA256, signature);
}

function pem(certificate: Buffer): string {
  const lines = certificate.toString("base64").match(/.{1,64}/g)!;
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

/** A tag, a length and a value. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), value]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, ...parts);
}

/** An object identifier; its first byte holds two numbers. */
function oid(...bytes: number[]): Buffer {
  return der(0x06, Buffer.from(bytes));
}

const ECDSA_WITH_SHA256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
/** Basic constraints, critical: it may sign certificates. */
const IS_AUTHORITY = sequence(
  oid(0x55, 0x1d, 0x13),
  der(0x01, Buffer.from([0xff])),
  der(0x04, sequence(der(0x01, Buffer.from([0xff])))),
);

function alternativeNames(ip: string | undefined, dns: string | undefined): Buffer {
  const names: Buffer[] = [];
  if (dns !== undefined) names.push(der(0x82, Buffer.from(dns)));
  if (ip !== undefined) names.push(der(0x87, Buffer.from(ip.split(".").map(Number))));
  return sequence(oid(0x55, 0x1d, 0x11), der(0x04, sequence(...names)));
}

/** A common name. */
function nameOf(text: string): Buffer {
  return sequence(der(0x31, sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from(text)))));
}

/** YYMMDDHHMMSSZ. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]/g, "").slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}
