// Where this library is, and its variables: those of a block (__shared__), which are thread-local, and g++'s guards.
#pragma once

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "race_written.h"

namespace cuda_host {

struct Library {
  std::string name;
  uintptr_t start = 0;
  size_t bytes = 0;
  std::set<uintptr_t> guards;  // by their places in a block's variables

  uint32_t offset_of(const void* pc) const {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pc) - start);
  }
  // Finds it at the first call. Returns this host thread's copy of the shared variables.
  Range find() {
    Dl_info info;
    if (!start && dladdr(reinterpret_cast<const void*>(&visit), &info)) {
      name = info.dli_fname;
      start = reinterpret_cast<uintptr_t>(info.dli_fbase);
      find_guards();
    }
    Found found{this, {}};
    dl_iterate_phdr(&visit, &found);
    return found.shared;
  }
  // g++ guards shared arrays of classes with constructors, though these do nothing. The guards are none of the code's
  // variables.
  bool is_guard(const Range& shared, const void* memory) const {
    return !guards.empty() && shared.has(memory) &&
           guards.count(reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(shared.memory));
  }

 private:
  struct Found {
    Library* library;
    Range shared;
  };
  static int visit(dl_phdr_info* info, size_t, void* into) {
    Found& found = *static_cast<Found*>(into);
    if (info->dlpi_addr != found.library->start) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& part = info->dlpi_phdr[i];
      if (part.p_type == PT_LOAD)
        found.library->bytes = std::max<size_t>(found.library->bytes, part.p_vaddr + part.p_memsz);
      if (part.p_type == PT_TLS && info->dlpi_tls_data) found.shared = {info->dlpi_tls_data, part.p_memsz};
    }
    return 1;
  }
  void find_guards() {
    std::vector<char> file;
    if (FILE* const opened = fopen(name.c_str(), "rb")) {
      fseek(opened, 0, SEEK_END);
      file.resize(ftell(opened));
      rewind(opened);
      if (fread(file.data(), 1, file.size(), opened) != file.size()) file.clear();
      fclose(opened);
    }
    if (file.size() < sizeof(ElfW(Ehdr))) return;
    const auto* const head = reinterpret_cast<const ElfW(Ehdr)*>(file.data());
    const auto* const sections = reinterpret_cast<const ElfW(Shdr)*>(file.data() + head->e_shoff);
    for (int i = 0; i < head->e_shnum; ++i) {
      if (sections[i].sh_type != SHT_SYMTAB) continue;
      const char* const names = file.data() + sections[sections[i].sh_link].sh_offset;
      const auto* symbol = reinterpret_cast<const ElfW(Sym)*>(file.data() + sections[i].sh_offset);
      for (size_t left = sections[i].sh_size / sizeof *symbol; left; --left, ++symbol)
        if (ELF64_ST_TYPE(symbol->st_info) == STT_TLS && !strncmp(names + symbol->st_name, "_ZGV", 4))
          guards.insert(symbol->st_value);
    }
  }
};

}  // namespace cuda_host
