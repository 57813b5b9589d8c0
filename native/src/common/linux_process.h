// Functions of Linux for the processes of a group.
#pragma once

#include <sys/types.h>

#include <string>

namespace hydra {

// Asks the kernel to kill this process when its parent ends; exits at once if `parent` has ended.
void die_with_parent(pid_t parent);

int thread_count();

// Confines this process, which has one thread, and its children to a list of CPUs such as "0-3,8"; "" is any
// CPUs. Throws EnvironmentError if the text is no list, or this host has not all of these CPUs for the
// process.
void confine_to(const std::string& cpus);

// A pipe; the destructor closes both ends.
class Pipe {
  public:
    Pipe();
    ~Pipe() {
        close_read();
        close_write();
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    [[nodiscard]] int read_end() const { return ends_[0]; }
    [[nodiscard]] int write_end() const { return ends_[1]; }
    void close_read() { close_end(0); }
    void close_write() { close_end(1); }

  private:
    void close_end(int which);
    int ends_[2];
};

}  // namespace hydra
