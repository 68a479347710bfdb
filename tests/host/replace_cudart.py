#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program linked against NVIDIA's cudart runs with the work-alike instead,
with all names bound and without a word from the dynamic linker.
replace_cudart.py SOURCE TOOLKIT WORK-ALIKES COMPILER..."""
import os
import subprocess
import sys
import tempfile


def main():
    source, toolkit, folder = sys.argv[1:4]
    real = os.path.join(toolkit, 'lib64')
    if not os.path.exists(os.path.join(real, 'libcudart.so.13')):
        print('no libcudart.so.13 in ' + real)
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, 'program')
        subprocess.run(sys.argv[4:] + [
            '-I' + os.path.join(toolkit, 'include'), source, '-o', program,
            os.path.join(real, 'libcudart.so.13'),
            os.path.join(real, 'libcublas.so.13'), '-Wl,--no-as-needed',
            '-Wl,-rpath-link,' + real], check=True)
        for how in ('LD_LIBRARY_PATH', 'LD_PRELOAD'):
            environment = dict(os.environ, LD_BIND_NOW='1')
            if how == 'LD_LIBRARY_PATH':
                environment[how] = folder
            else:
                environment[how] = ' '.join(
                    os.path.join(folder, name) for name in
                    ('libcudart.so.13', 'libcublasLt.so.13',
                     'libcublas.so.13'))
            run = subprocess.run([program], env=environment, text=True,
                                 capture_output=True, timeout=60)
            if (run.returncode, run.stdout, run.stderr) != (
                    0, 'sundog host device: 42\n', ''):
                print(how, run, file=sys.stderr)
                return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
