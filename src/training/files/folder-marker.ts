// The marker of a shared folder (claim-storage.ts).

import { linkSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { OperatorError } from "../../errors/faults.ts";
import { syncFolder, temporaryBeside, writeNewFile } from "../../system/files.ts";
import { MARKER, type MarkerPlace } from "./claim-storage.ts";

export class FolderMarker implements MarkerPlace {
  readonly name: string;
  readonly kind = "folder";
  readonly advice = "Mount the same shared folder there on every server of the database";
  readonly #file: string;

  constructor(folder: string) {
    this.name = folder;
    this.#file = join(folder, MARKER);
  }

  async assertUsable(): Promise<void> {
    const found = statSync(this.name, { throwIfNoEntry: false });
    if (!found) throw new OperatorError(`--storage ${this.name} does not exist: make the folder, or mount it there`);
    if (!found.isDirectory()) throw new OperatorError(`--storage ${this.name} is not a folder`);
    const probe = temporaryBeside(this.#file);
    try {
      writeNewFile(probe, [new Uint8Array(1)]);
    } catch (error) {
      throw new OperatorError(`cannot write to --storage ${this.name}: ${(error as Error).message}`, { cause: error });
    } finally {
      rmSync(probe, { force: true });
    }
  }

  async read(): Promise<string | null> {
    try {
      return readFileSync(this.#file, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw new OperatorError(`cannot read ${this.#file}: ${(error as Error).message}`, { cause: error });
    }
  }

  async make(text: string): Promise<void> {
    const temporary = temporaryBeside(this.#file);
    try {
      // a link, because a rename would replace the marker of another server
      writeNewFile(temporary, [new TextEncoder().encode(text)]);
      linkSync(temporary, this.#file);
      syncFolder(dirname(this.#file));
    } catch (error) {
      if ((await this.read()) !== null) return;
      throw new OperatorError(`cannot make ${this.#file}: ${(error as Error).message}`, { cause: error });
    } finally {
      rmSync(temporary, { force: true });
    }
  }

  async remove(): Promise<void> {
    rmSync(this.#file, { force: true });
  }
}
